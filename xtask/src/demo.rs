//! A program that knows nothing of PERUSE, with a profiler put in front of it that shows which rank is slow.

use crate::shell::{Result, command, distribution, empty, number, root, run, target};

/// `demo [DIST]`: DEMO_SLOW=RANK picks the slow rank (default 2), DEMO_STEPS the length (default 100).
pub fn main(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    let (slow, steps) = (number("DEMO_SLOW", 2).to_string(), number("DEMO_STEPS", 100).to_string());
    let built = empty(target().join("demo"))?;
    let (heat, profiler) = (built.join("heat"), built.join("libperuse_profile.so"));
    let mpicc = || command(dist.join("bin/mpicc"));
    run(mpicc().args(["-O2", "examples/heat.c", "-lm", "-o"]).arg(&heat))?;
    run(mpicc().args(["-O2", "-shared", "-fPIC", "examples/peruse/profiler.c", "-o"]).arg(&profiler))?;
    println!(
        "A heat solver on 4 ranks, of which rank {slow} dawdles for 4 ms in every step. The profiler is preloaded:\n\n  \
         mpiexec -n 4 -x LD_PRELOAD=libperuse_profile.so ./heat --steps {steps} --slow {slow}\n"
    );
    let mut job = command(dist.join("bin/mpiexec"));
    job.args(["-n", "4", "-x"]).arg(format!("LD_PRELOAD={}", profiler.display())).arg(&heat);
    run(job.args(["--steps", &steps, "--slow", &slow]).current_dir(root()))?;
    println!(
        "\nHow to read it: the ranks that wait have a long activate->match, for their receives are posted long before a\n\
         message comes. The slow rank waits for nobody: messages lie in its unexpected queue until it gets to them."
    );
    Ok(())
}
