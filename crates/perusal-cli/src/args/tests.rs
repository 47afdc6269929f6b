use std::ffi::OsStr;
use std::time::Duration;

use super::*;
use crate::start::environment::VariableChange;
use perusal::internals::placement::{Bind, MachineTopology, Region};

fn read(line: &str) -> Result<Plan, PlanError> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    parse("mpiexec", &arguments, 6)
}

fn refused(line: &str) -> String {
    match read(line) {
        Ok(plan) => panic!("{line} was taken as {plan:?}"),
        Err(PlanError::Text(text)) => text,
        Err(PlanError::Clap(error)) => error.to_string(),
    }
}

#[test]
fn the_spellings_of_the_number_of_ranks() {
    for line in ["-n 3 a", "-np 3 a", "--np 3 a", "-n3 a", "-c 3 a", "--n 3 a", "-np=3 a", "--n=3 a"] {
        assert_eq!(read(line).unwrap().ranks(), 3, "{line}");
    }
    assert_eq!(read("a").unwrap().ranks(), 6);
    let soft = read("-n 7 -soft 2:6:2 a").unwrap();
    assert_eq!((soft.ranks(), soft.apps[0].most), (6, 7));
    let in_env_info = VariableChange::Set("PERUSAL_SOFT".into(), "2:6:2".into());
    assert!(soft.apps[0].changes.set.contains(&in_env_info));
    assert_eq!(read("a : b").unwrap().ranks(), 2);
    // So many on each node, and there is one.
    assert_eq!(read("--pernode a : a").unwrap().ranks(), 2);
    for line in ["-N 3 a", "-npernode 3 a", "-ppn 3 a", "--map-by ppr:3:node a", "--map-by PPR:3:node:PE=2 a"]
    {
        assert_eq!(read(line).unwrap().ranks(), 3, "{line}");
        assert_eq!(read(&format!("-n 2 {line} : {line}")).unwrap().ranks(), 5, "{line}");
    }
}

#[test]
fn the_spellings_of_a_job_that_goes_on_without_the_dead() {
    for line in [
        "--survive a",
        "-disable-auto-cleanup a",
        "--enable-recovery a",
        "--with-ft ulfm a",
        "a : --survive b",
    ] {
        assert!(read(line).unwrap().survive, "{line}");
    }
    for line in ["a", "--with-ft none a", "a --survive"] {
        assert!(!read(line).unwrap().survive, "{line}");
    }
    assert!(refused("--with-ft checkpoint a").contains("only \"ulfm\" and \"none\""));
}

#[test]
fn what_follows_the_program_is_its_own() {
    let plan = read("-n 2 ./a -n 5 --help -l").unwrap();
    assert_eq!(plan.apps[0].command, ["./a", "-n", "5", "--help", "-l"]);
    assert!(!plan.label);
    assert_eq!(read("-n 1 -- -odd").unwrap().apps[0].command, ["-odd"]);
}

#[test]
fn several_programs_make_one_job() {
    let plan = read("-n 2 -wdir /a x : -np 3 -env V 1 y z").unwrap();
    assert_eq!(plan.ranks(), 5);
    assert_eq!(plan.apps[0].wdir.as_deref(), Some(OsStr::new("/a")));
    assert_eq!(plan.apps[1].command, ["y", "z"]);
    assert_eq!(plan.apps[1].changes.set, [VariableChange::of(OsStr::new("V=1"))]);
    assert!(plan.apps[0].changes.set.is_empty());
}

#[test]
fn variables_in_every_spelling() {
    let plan = read("-x A=1 -x B -env C 2 -genv D=3 -genv E x=y a : b").unwrap();
    let set: Vec<VariableChange> =
        ["D=3", "E=x=y", "A=1", "B", "C=2"].map(|s| VariableChange::of(OsStr::new(s))).to_vec();
    assert_eq!(plan.apps[0].changes.set, set);
    assert_eq!(plan.apps[1].changes.set, set[..2]);
    assert_eq!(read("-genvlist A,B a").unwrap().apps[0].changes.only, Some(vec!["A".into(), "B".into()]));
    assert_eq!(read("-envnone a").unwrap().apps[0].changes.only, Some(vec![]));
    assert_eq!(read("-genvnone -envall a").unwrap().apps[0].changes.only, None);
    // Of all programs, unless one says otherwise for itself.
    let only = |arguments: &str| read(arguments).unwrap().apps.into_iter().map(|app| app.changes.only);
    assert!(only("-genvnone a : b").eq([Some(vec![]), Some(vec![])]));
    let one = |name: &str| Some(vec![name.into()]);
    assert!(only("-genvlist A a : -envlist B b : c").eq([one("A"), one("B"), one("A")]));
}

#[test]
fn what_other_mpis_have_is_taken_with_a_note_where_it_says_nothing_here() {
    let plan = read(
        "--allow-run-as-root --oversubscribe --mca btl self,sm -hostfile h -ppn 4 -host localhost:2 -n 1 a",
    );
    let plan = plan.unwrap();
    assert_eq!(plan.apps[0].command, ["a"]);
    assert_eq!(plan.notes.len(), 2);
}

#[test]
fn switches_may_be_given_again_and_in_several_spellings() {
    let line = "--allow-run-as-root --display-map -q -v -rr --oversubscribe --use-hwthread-cpus -genvall -envall -l -l -n 2 a";
    let plan = read(line).unwrap();
    assert!(plan.label);
    assert_eq!((plan.ranks(), plan.notes.len()), (2, 0));
    // Of two values one would have to be forgotten.
    assert!(refused("-n 2 -n 3 a").contains("cannot be used multiple times"));
}

#[test]
fn hosts_are_elsewhere_unless_all_of_them_are_this_machine() {
    assert_eq!(read("-host localhost:2,127.0.0.1 a").unwrap().hosts, None);
    // Ranks are as many as the hosts are for, whoever runs them.
    for (hosts, ranks) in [("localhost:4", 4), ("localhost", 1), ("localhost:2,127.0.0.1,[::1]:3,::1", 7)] {
        assert_eq!(read(&format!("-hosts {hosts} a")).unwrap().ranks(), ranks, "{hosts}");
        assert_eq!(read(&format!("-hosts {hosts} -n 9 a")).unwrap().ranks(), 9, "{hosts}");
    }
    assert_eq!(read("-hosts localhost:8 -ppn 3 a").unwrap().ranks(), 3);
    assert_eq!(read("-host localhost:4 a : -host localhost:4 b").unwrap().ranks(), 2);
    let plan = read("--hosts localhost:2,elsewhere.example:3 --launcher ssh a").unwrap();
    let hosts = plan.hosts.unwrap();
    assert_eq!(hosts.list, ["localhost:2", "elsewhere.example:3"]);
    assert_eq!(hosts.options, [("-launcher", "ssh".into())]);
    assert_eq!((plan.apps[0].count, plan.notes.len()), (5, 0));
    let plan = read("--hosts elsewhere.example,other.example -ppn 2 a").unwrap();
    assert_eq!((plan.ranks(), plan.hosts.unwrap().options), (4, vec![("-ppn", "2".into())]));
    assert_eq!(read("--launcher ssh a").unwrap().notes.len(), 1);
    let notes = read("--hosts elsewhere.example --check --bind-to core a").unwrap().notes;
    assert_eq!(notes.len(), 2);
    assert!(notes[0].starts_with("--check is without effect"));
    let line = "--hosts elsewhere.example --list-events --initial-errhandler mpi_errors_return --path /p --memory-alloc-kinds mpi a";
    let plan = read(line).unwrap();
    assert_eq!(plan.notes.len(), 3);
    assert_eq!(plan.hosts.unwrap().options, [("-memory-alloc-kinds", "mpi".into())]);
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    assert!(refused("-frobnicate a").contains("unknown option -frobnicate"));
    assert!(refused("--frobnicate a").contains("unknown option --frobnicate"));
    assert!(refused("-lq a").contains("unknown option -lq"));
    assert!(refused("-n").contains("-n needs 1 more argument"));
    assert!(refused("-n 0 a").contains("at least one rank"));
    assert!(refused("-N 0 a").contains("at least one rank"));
    assert!(refused("--map-by ppr:2:moon a").contains("ppr:N:NAME"));
    assert!(refused("-usize many a").contains("\"SYSTEM\""));
    assert!(refused("-prepend-pattern %x a").contains("-prepend-pattern %x"));
    assert!(refused("--stdin some a").contains("\"all\""));
    assert!(refused("-n x a").contains("invalid value 'x'"));
    for host in ["elsewhere.example:x", "localhost:x", "localhost:0", ":4", "[::1]x"] {
        assert!(refused(&format!("-host {host} a")).contains("HOST:RANKS"), "{host}");
    }
    assert!(refused("--output xml a").contains("\"file=NAME\""));
    assert!(refused("--timeout -3 a").contains("above 0"));
    for long in ["1e30", "1e19", "1000000001", "inf"] {
        assert!(refused(&format!("--timeout {long} a")).ends_with("above 0, 1000000000 at most"), "{long}");
    }
    assert!(refused("--bind-to moon a").contains("--bind-to moon"));
    assert!(refused("-n 2").contains("PROGRAM"));
    assert!(refused("-n 2 a :").contains("PROGRAM"));
    assert!(refused("-n 2 --stdin 2 a").contains("the last rank of the job is 1"));
    assert!(refused("--map-by core:PE=7 a").contains("7 CPUs, for 6 are usable"));
    assert!(refused("--bind-to core:7 a").contains("7 CPUs, for 6 are usable"));
    for line in ["-x =a b", "-env = a b", "-genv =1 b", "-env =1 b"] {
        assert!(refused(line).contains("needs a name"), "{line}");
    }
    assert!(refused("-n 70000 a").contains("70000 ranks"));
    assert!(refused("-n 4 -soft 5 a").contains("up to 4"));
    assert!(refused("-n 2000000000 -soft 1:2000000000 a").contains("2000000000 ranks are more processes"));
    assert!(refused("-arch vax a").contains("this machine only"));
    assert!(refused("-initial-errhandler none a").contains("mpi_errors_return"));
}

#[test]
fn options_of_the_whole_job() {
    let plan =
        read("-l --timeout 1.5 --stdin none --bind-to core --map-by socket --report-bindings a").unwrap();
    assert!(plan.label && plan.report_bindings);
    assert_eq!(plan.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(plan.stdin, Stdin::None);
    assert!(read("--tag-output a").unwrap().label);
    assert!(read("--output tag a").unwrap().label);
    assert!(read("--display map,bind a").unwrap().report_bindings);
    assert!(!read("--display allocation --noprefix a").unwrap().report_bindings);
}

#[test]
fn what_stands_before_lines_and_who_gets_input_is_said_as_for_other_launchers() {
    for line in ["--timestamp-output a", "--output timestamp a", "--output tag,TIMESTAMP a"] {
        assert!(read(line).unwrap().timestamps, "{line}");
    }
    assert!(read("-prepend-pattern [%r]%h a").unwrap().prefix.is_some());
    for line in ["--stdin all a", "-s all a"] {
        assert_eq!(read(line).unwrap().stdin, Stdin::All, "{line}");
    }
    let universe = |line: &str| read(line).unwrap().universe;
    assert_eq!(
        [universe("-usize SYSTEM a"), universe("--universe 9 a"), universe("-usize INFINITE a")],
        [Some(6), Some(9), None]
    );
}

#[test]
fn so_many_ranks_on_each_part_of_the_machine_make_a_job_of_as_many() {
    let machine = MachineTopology::load();
    for (name, parts) in [
        ("socket", machine.sockets()),
        ("package", machine.sockets()),
        ("numa", machine.numas()),
        ("core", machine.cores()),
        ("l3cache", machine.regions(Region::L3Cache)),
        ("L2cache", machine.regions(Region::L2Cache)),
    ] {
        let line = format!("--map-by ppr:3:{name}");
        assert_eq!(read(&format!("{line} a")).unwrap().ranks() as usize, 3 * parts.len(), "{name}");
        assert_eq!(read(&format!("{line} -n 2 a")).unwrap().ranks(), 2, "{name}");
    }
    let plan = read("--npersocket 2 a").unwrap();
    assert_eq!(plan.ranks() as usize, 2 * machine.sockets().len());
    assert_eq!(plan.policy.bind, Bind::Region(Region::Socket));
}

#[test]
fn the_spellings_of_where_output_goes() {
    let file = |line: &str, stream| read(line).unwrap().files.name_of(stream, 3, 12);
    for line in ["--output-filename /t/o a", "--output file=/t/o a", "--output TAG,file=/t/o:NOCOPY a"] {
        assert_eq!(
            (file(line, 0), file(line, 1)),
            (Some("/t/o.03".into()), Some("/t/o.03".into())),
            "{line}"
        );
    }
    let plan = read("--output tag,merge,file=/t/o:nocopy a").unwrap();
    assert!(plan.label && plan.files.merged && plan.files.alone);
    assert!(read("--merge-stderr-to-stdout a").unwrap().files.merged);
    assert_eq!(file("--output dir=/t a", 1), Some("/t/1/rank.03/stderr".into()));
    let line = "-outfile-pattern=/t/o.%r -errfile-pattern /t/e a";
    assert_eq!((file(line, 0), file(line, 1)), (Some("/t/o.3".into()), Some("/t/e".into())));
    assert_eq!(file("a", 0), None);
}

#[test]
fn what_holds_for_the_whole_job_is_the_launchers_too_however_it_is_set() {
    let set = |line: &str| {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        super::read("mpiexec", &arguments).unwrap().job_variables()
    };
    let line = "-genv PERUSAL_RING_CELLS 512 -x PERUSAL_SHARED_HEAP=0 -x PERUSAL_SPIN_US=7 -x A=1 a : -env PERUSAL_BIND_TO core -x PERUSAL_SHARED_HEAP=0 b";
    let wanted = [("PERUSAL_RING_CELLS", "512"), ("PERUSAL_SHARED_HEAP", "0"), ("PERUSAL_BIND_TO", "core")];
    assert_eq!(set(line).unwrap(), wanted.map(|(name, value)| (name, value.into())));
    assert_eq!(set("-x PERUSAL_RING_CELLS a").unwrap(), [], "what is passed on is in force anyway");
    let Err(PlanError::Text(why)) = set("-x PERUSAL_RING_BULK=1024 a : -x PERUSAL_RING_BULK=2048 b") else {
        panic!("one of the two would be forgotten");
    };
    assert_eq!(why, "PERUSAL_RING_BULK is set to 1024 and to 2048: it holds for all ranks of a job");
}

#[test]
fn the_definition_of_options_is_sound() {
    definition().debug_assert();
}
