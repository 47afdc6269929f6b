//! Two nodes on one machine, and what is tested between them: this process and its children are on one, in a network
//! namespace of their own; the other has a PID namespace besides. A pair of virtual interfaces joins them. Nothing is
//! left when the process ends.

use crate::shell::{Result, attempt, command, folder, read, root, run, write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Seconds that a job may take. It takes 3 where nobody else uses the CPUs.
const LIMIT: &str = "600";
/// Set in the process that is on a node of its own.
const INSIDE: &str = "FABRIC_INSIDE";
/// The address of this node.
pub const HERE: &str = "10.77.0.1";
const THERE: &str = "10.77.0.2";
/// Seconds after which a peer that does not answer is given up, in the test of a link that is cut.
const TIMEOUT: &str = "3";

/// Whether this process is on a node of its own.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this program again, with these arguments, on a node of its own. `None` if that is not possible here.
pub fn inside(arguments: &[String]) -> Option<Result> {
    let possible = attempt(command("unshare").args(["--net", "ip", "link", "set", "lo", "up"])).0;
    let program = std::env::current_exe().ok().filter(|_| possible)?;
    let mut again = command("unshare");
    again.args(["--net", "--"]).arg(program).arg("fabric-test").args(arguments).env(INSIDE, "1");
    Some(run(&mut again))
}

/// The other node.
pub struct Nodes {
    /// Holds its namespaces.
    holder: Child,
    /// The first process there, as this node numbers it.
    init: String,
    folder: PathBuf,
}

impl Nodes {
    /// Makes the other node and the link to it.
    pub fn new(work: &Path) -> Result<Self> {
        let folder = folder(work.join("nodes"))?;
        let mut holder = command("unshare");
        holder.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        // The first process of a PID namespace is the parent of those whose parents end.
        holder.args(["sh", "-c", "while :; do sleep 1000 & wait; done"]).stdin(Stdio::null());
        let holder = holder.spawn().map_err(|error| format!("unshare: {error}"))?;
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        let start = Instant::now();
        let init = loop {
            let init = read(&children).unwrap_or_default().trim().to_owned();
            // It has its own /proc by the time it is a shell.
            if read(format!("/proc/{init}/comm")).is_ok_and(|name| name.trim() == "sh") {
                break init;
            }
            if start.elapsed() > Duration::from_secs(20) {
                return Err("unshare has made no namespace within 20 s".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let nodes = Self { holder, init, folder };
        let ip = |line: &str| run(command("ip").args(line.split(' ')));
        ip("link add perusal0 type veth peer name perusal1")?;
        ip(&format!("link set perusal1 netns {}", nodes.init))?;
        for (line, there) in [
            ("link set lo up".to_owned(), false),
            ("link set lo up".to_owned(), true),
            (format!("addr add {HERE}/24 dev perusal0"), false),
            (format!("addr add {THERE}/24 dev perusal1"), true),
            ("link set perusal0 up".to_owned(), false),
            ("link set perusal1 up".to_owned(), true),
        ] {
            match there {
                false => ip(&line)?,
                true => run(command("nsenter").args(["-t", &nodes.init, "-n", "ip"]).args(line.split(' ')))?,
            }
        }
        // In place of ssh: options, a host, a command. nsenter that forks stops with its child, and nobody continues
        // it: here the shell forks.
        let script = format!(
            "#!/bin/sh\nwhile case $1 in -*) ;; *) false;; esac; do shift; done\nshift\nexec nsenter -t {} -n -p -m --no-fork /bin/sh -c \"$*\nexit\"\n",
            nodes.init
        );
        write(nodes.launcher(), script)?;
        run(command("chmod").arg("+x").arg(nodes.launcher()))?;
        write(nodes.hosts(), format!("{HERE}:1\n{THERE}:1\n"))?;
        Ok(nodes)
    }

    /// Begins a command on the other node.
    pub fn there(&self) -> Command {
        let mut there = command("nsenter");
        there.args(["-t", &self.init, "-n", "-p", "-m"]);
        there
    }

    fn launcher(&self) -> PathBuf {
        self.folder.join("ssh")
    }

    fn hosts(&self) -> PathBuf {
        self.folder.join("hosts")
    }

    /// The variables that have MPICH's launcher deal ranks to both nodes in turn.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("HYDRA_LAUNCHER", "ssh".to_owned()),
            ("HYDRA_LAUNCHER_EXEC", self.launcher().display().to_string()),
            ("HYDRA_HOST_FILE", self.hosts().display().to_string()),
        ]
    }

    /// The processes of that name on the other node, as this node numbers them.
    fn processes(&self, name: &str) -> Result<Vec<String>> {
        let space = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/pid")).ok();
        let there = space(&self.init);
        let processes = std::fs::read_dir("/proc").map_err(|error| error.to_string())?;
        let names = processes.filter_map(|one| one.ok()?.file_name().into_string().ok());
        let is_it = |process: &String| {
            read(format!("/proc/{process}/comm")).is_ok_and(|comm| comm.trim() == name)
                && space(process) == there
        };
        Ok(names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(is_it).collect())
    }

    fn cut(&self, is_cut: bool) -> Result {
        run(command("ip").args(["link", "set", "perusal0", if is_cut { "down" } else { "up" }]))
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// What a test says: its name, whether it has passed, what was printed.
pub type Verdict = (&'static str, bool, String);

/// Runs tests/fabric/nodes.c on both nodes, with the MPICH of `mpich`, over the provider of `dist` as `over` has it.
pub fn programs(nodes: &Nodes, mpich: &Path, dist: &Path, over: &[(&str, String)]) -> Result<Vec<Verdict>> {
    let program = nodes.folder.join("program");
    let source = root().join("tests/fabric/nodes.c");
    run(command(dist.join("bin/mpicc")).args(["-O1", "-Wall", "-o"]).arg(&program).arg(source))?;
    let job = |arguments: &[&str]| {
        let mut job = command("timeout");
        job.args(["-s", "KILL", LIMIT]).arg(mpich.join("bin/mpiexec.hydra")).args(["-n", "8"]);
        job.arg(&program).args(arguments);
        job.envs(over.iter().map(|(name, value)| (name, value))).envs(nodes.environment());
        job.env("LD_LIBRARY_PATH", mpich.join("lib")).env("PERUSAL_FABRIC_SUMMARY", "1");
        job
    };
    let mut verdicts = Vec::new();
    let (good, output) = attempt(&mut job(&[]));
    verdicts.push(("receives from any source, both nodes", good && output.contains("No Errors"), output));
    let (good, output) = attempt(&mut job(&["rings"]));
    verdicts.push(("neighbours on a node use rings alone", good && are_in_rings(&output), output));
    for (name, rank) in [("a rank killed here", "2"), ("a rank killed there", "3")] {
        let (good, output) = attempt(&mut job(&["kill", rank]));
        verdicts.push((name, !good && !output.contains("No Errors"), output));
    }
    for (name, what) in [("the link cut", "wait"), ("the link cut amid long messages", "stream")] {
        verdicts.push(link_cut(nodes, name, job(&[what]))?);
    }
    verdicts.push(proxy_stopped(nodes, mpich)?);
    let mut run = command("timeout");
    run.args(["-s", "KILL", LIMIT]).arg(dist.join("bin/perusal")).arg("run");
    run.arg("--hosts").arg(format!("{HERE}:4,{THERE}:4")).arg("--launcher-exec").arg(nodes.launcher());
    run.arg(&program).env("PERUSAL_MPICH", mpich);
    let (good, output) = attempt(&mut run);
    verdicts.push(("perusal run --hosts", good && output.contains("No Errors"), output));
    Ok(verdicts)
}

/// Whether each endpoint has sent its 10,000 messages on its node, and elsewhere only what beginning and end need.
fn are_in_rings(output: &str) -> bool {
    let counts = output.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" has sent ")?;
        let numbers: Vec<u64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
        Some((*numbers.first()?, *numbers.get(2)?))
    });
    let counts: Vec<(u64, u64)> = counts.collect();
    counts.len() == 8 && counts.iter().all(|one| one.0 >= 10_000 && one.1 < 1000)
}

/// The link is cut while rank 0 waits for a rank of the other node, or for what is on its way from there: the wait ends
/// with an error, and so does the job.
fn link_cut(nodes: &Nodes, name: &'static str, mut job: Command) -> Result<Verdict> {
    let log = nodes.folder.join("cut.log");
    let file = std::fs::File::create(&log).map_err(|error| error.to_string())?;
    let errors = file.try_clone().map_err(|error| error.to_string())?;
    job.env("PERUSAL_FABRIC_TIMEOUT", TIMEOUT).stdin(Stdio::null()).stdout(file).stderr(errors);
    let mut job = job.spawn().map_err(|error| error.to_string())?;
    let start = Instant::now();
    let waits = |text: &str| text.contains("waiting");
    while !read(&log).is_ok_and(|text| waits(&text)) && start.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(50));
    }
    // The others begin to wait, too.
    std::thread::sleep(Duration::from_millis(500));
    nodes.cut(true)?;
    let ended = |text: &str| text.contains("Fatal error in internal_Recv");
    while !read(&log).is_ok_and(|text| ended(&text)) && start.elapsed() < Duration::from_secs(500) {
        std::thread::sleep(Duration::from_millis(50));
    }
    nodes.cut(false)?;
    let status = job.wait().map_err(|error| error.to_string())?;
    let output = read(&log)?;
    Ok((name, waits(&output) && ended(&output) && !status.success(), output))
}

/// MPICH's proxy of the other node and its shell are stopped for a moment: what has started them is not left stopped,
/// and the job ends as ever.
fn proxy_stopped(nodes: &Nodes, mpich: &Path) -> Result<Verdict> {
    const NAME: &str = "a proxy stopped and continued";
    // Some are left for a while where the link was cut.
    let others = nodes.processes("hydra_pmi_proxy")?;
    let mut job = command("timeout");
    job.args(["-s", "KILL", "60"]).arg(mpich.join("bin/mpiexec.hydra")).args(["-n", "2", "sleep", "3"]);
    job.envs(nodes.environment()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let job = job.spawn().map_err(|error| error.to_string())?;
    let start = Instant::now();
    let proxy = loop {
        let mut proxies = nodes.processes("hydra_pmi_proxy")?;
        proxies.retain(|proxy| !others.contains(proxy));
        if !proxies.is_empty() {
            break proxies.pop();
        }
        if start.elapsed() > Duration::from_secs(30) {
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let parent = |process: &String| status(process, "PPid:");
    let shell = proxy.as_ref().and_then(parent);
    let launcher = shell.as_ref().and_then(parent);
    for signal in ["-STOP", "-CONT"] {
        for process in [&shell, &proxy].into_iter().flatten() {
            run(command("kill").args([signal, process]))?;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    let states =
        [proxy, shell, launcher].map(|process| process.and_then(|process| status(&process, "State:")));
    let goes_on = states.iter().all(|state| state.as_ref().is_some_and(|state| !state.starts_with('T')));
    let ended = job.wait_with_output().map_err(|error| error.to_string())?;
    let mut output = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    output += &format!("the proxy, its shell, and what has started that: {states:?}\n");
    Ok((NAME, goes_on && ended.status.success(), output))
}

/// What the kernel says of a process in the line that begins so.
fn status(process: &str, line: &str) -> Option<String> {
    let text = read(format!("/proc/{process}/status")).ok()?;
    text.lines().find_map(|one| Some(one.strip_prefix(line)?.trim().to_owned()))
}
