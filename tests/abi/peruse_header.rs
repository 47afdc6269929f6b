//! `include/peruse.h`: C and C++ take it, every spelling is there, and its numbers are the library's.

use crate::common::{cc, root, scratch, success};
use perusal::events::{CATALOG, CommSpec, Event, Operation, WinSpec};
use perusal_abi::peruse::Code;
use std::fs;
use std::process::Command;

/// Prints `name value` for each, by a C program that includes the header.
fn values(scratch_name: &str, names: &[String]) -> Vec<i64> {
    let dir = scratch(scratch_name);
    let lines: String =
        names.iter().map(|name| format!("    printf(\"%ld\\n\", (long)({name}));\n")).collect();
    let text = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include <peruse.h>\nint main(void)\n{{\n{lines}    return 0;\n}}\n"
    );
    fs::write(dir.join("values.c"), text).unwrap();
    cc(&["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "values.c", "-o", "values"], &dir);
    let out = success(Command::new(dir.join("values")).output().unwrap(), "values");
    out.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn every_event_and_every_spelling_has_the_catalogues_number() {
    let rows: Vec<(String, i64)> = CATALOG
        .iter()
        .filter(|row| row.peruse.is_some())
        .flat_map(|row| {
            row.aliases
                .iter()
                .chain([&row.name])
                .map(|name| (name.to_str().unwrap().to_owned(), row.event.number().into()))
        })
        .chain([("PERUSE_EVENT_INVALID".into(), 0), ("PERUSE_FIRST_CUSTOM_EVENT".into(), 17)])
        .collect();
    let names: Vec<String> = rows.iter().map(|(name, _)| name.clone()).collect();
    let expected: Vec<i64> = rows.into_iter().map(|(_, number)| number).collect();
    assert_eq!(values("peruse_events", &names), expected);
    assert_eq!(Event::ReqXferContinue.number(), 17, "the first custom event comes after the sixteen");
}

#[test]
fn the_constants_of_appendix_d_are_all_there_with_the_librarys_values() {
    let rows = [
        ("PERUSE_SUCCESS", Code::Success as i64),
        ("PERUSE_ERR_INIT", Code::Init as i64),
        ("PERUSE_ERR_GENERIC", Code::Generic as i64),
        ("PERUSE_ERR_MALLOC", Code::Malloc as i64),
        ("PERUSE_ERR_EVENT", Code::Event as i64),
        ("PERUSE_ERR_EVENT_HANDLE", Code::EventHandle as i64),
        ("PERUSE_ERR_PARAMETER", Code::Parameter as i64),
        ("PERUSE_ERR_MPI_INIT", Code::MpiInit as i64),
        ("PERUSE_ERR_COMM", Code::Comm as i64),
        ("PERUSE_ERR_MPI_OBJECT", Code::MpiObject as i64),
        ("PERUSE_ERR_LOCK", Code::Lock as i64),
        ("PERUSE_ERR_UNLOCK", Code::Unlock as i64),
        ("PERUSE_ERR_LOCK_NOT_GRANTABLE", Code::LockNotGrantable as i64),
        ("PERUSE_LOCK_NOT_GRANTABLE", Code::LockNotGrantable as i64),
        ("PERUSE_ERR_WIN", Code::Win as i64),
        ("PERUSE_PER_COMM", 0),
        ("PERUSE_PER_TAG", 1),
        ("PERUSE_PER_SOURCE", 2),
        ("PERUSE_GLOBAL", 3),
        ("PERUSE_PER_PEER", 4),
        ("PERUSE_SEND", Operation::Send as i64),
        ("PERUSE_RECV", Operation::Recv as i64),
        ("PERUSE_PUT", Operation::Put as i64),
        ("PERUSE_GET", Operation::Get as i64),
        ("PERUSE_ACC", Operation::Acc as i64),
        ("PERUSE_IO_READ", Operation::IoRead as i64),
        ("PERUSE_IO_WRITE", Operation::IoWrite as i64),
        ("PERUSE_WIN_FENCE", Operation::WinFence as i64),
        ("PERUSE_WIN_START", Operation::WinStart as i64),
        ("PERUSE_WIN_COMPLETE", Operation::WinComplete as i64),
        ("PERUSE_WIN_POST", Operation::WinPost as i64),
        ("PERUSE_WIN_WAIT", Operation::WinWait as i64),
        ("PERUSE_WIN_LOCK", Operation::WinLock as i64),
        ("PERUSE_WIN_UNLOCK", Operation::WinUnlock as i64),
        ("PERUSE_WIN_TEST", Operation::WinTest as i64),
        ("PERUSE_WIN_LOCK_ALL", Operation::WinLockAll as i64),
        ("PERUSE_WIN_UNLOCK_ALL", Operation::WinUnlockAll as i64),
        ("PERUSE_WIN_FLUSH", Operation::WinFlush as i64),
        ("PERUSE_WIN_SYNC", Operation::WinSync as i64),
        ("sizeof(peruse_win_spec_t)", size_of::<WinSpec>() as i64),
        ("offsetof(peruse_win_spec_t, o_datatype)", core::mem::offset_of!(WinSpec, o_datatype) as i64),
        ("offsetof(peruse_win_spec_t, t_buf)", core::mem::offset_of!(WinSpec, t_buf) as i64),
        ("offsetof(peruse_win_spec_t, t_datatype)", core::mem::offset_of!(WinSpec, t_datatype) as i64),
        ("offsetof(peruse_win_spec_t, acc_op)", core::mem::offset_of!(WinSpec, acc_op) as i64),
        ("offsetof(peruse_win_spec_t, peer)", core::mem::offset_of!(WinSpec, peer) as i64),
        ("offsetof(peruse_win_spec_t, operation)", core::mem::offset_of!(WinSpec, operation) as i64),
        ("PERUSE_FALSE", 0),
        ("PERUSE_TRUE", 1),
        ("PERUSE_EVENT_HANDLE_NULL", 0),
        ("sizeof(peruse_event_h)", 8),
        ("sizeof(peruse_event_handle)", 8),
        ("sizeof(peruse_comm_spec_t)", size_of::<CommSpec>() as i64),
        ("offsetof(peruse_comm_spec_t, buf)", core::mem::offset_of!(CommSpec, buf) as i64),
        ("offsetof(peruse_comm_spec_t, count)", core::mem::offset_of!(CommSpec, count) as i64),
        ("offsetof(peruse_comm_spec_t, datatype)", core::mem::offset_of!(CommSpec, datatype) as i64),
        ("offsetof(peruse_comm_spec_t, peer)", core::mem::offset_of!(CommSpec, peer) as i64),
        ("offsetof(peruse_comm_spec_t, tag)", core::mem::offset_of!(CommSpec, tag) as i64),
        ("offsetof(peruse_comm_spec_t, operation)", core::mem::offset_of!(CommSpec, operation) as i64),
    ];
    let names: Vec<String> = rows.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(values("peruse_constants", &names), rows.map(|(_, value)| value));
}

/// A tool that writes callbacks in every way the specification does, and takes the address of all 17 functions.
const TOOL: &str = r#"
#include <mpi.h>
#include <peruse.h>
#include <peruse.h>
static int first(peruse_event_h event_h, MPI_Aint unique_id, peruse_comm_spec_t *spec, void *param)
{
    struct peruse_comm_spec_t *same = spec;
    (void)event_h; (void)unique_id; (void)param; (void)same;
    return MPI_SUCCESS;
}
static int second(peruse_event_handle event_h, MPI_Aint unique_id, peruse_comm_spec_t *spec, void *param)
{
    return first(event_h, unique_id, spec, param);
}
static int by_f(MPI_Comm comm, peruse_comm_callback_f *callback, peruse_event_h *eh)
{
    return PERUSE_Event_comm_register(PERUSE_COMM_SEARCH_UNEX_Q_BEGIN, comm, callback, NULL, eh);
}
static int by_t(MPI_Comm comm, peruse_comm_callback_t *callback, peruse_event_handle *eh)
{
    return PERUSE_Event_comm_register(PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN, comm, callback, NULL, eh);
}
/* All error codes in one switch: none is another, but for the one that the specification spells twice. */
static const char *text(int code)
{
    switch (code) {
    case PERUSE_SUCCESS: return "success";
    case PERUSE_ERR_INIT: case PERUSE_ERR_GENERIC: case PERUSE_ERR_MALLOC: case PERUSE_ERR_EVENT:
    case PERUSE_ERR_EVENT_HANDLE: case PERUSE_ERR_PARAMETER: case PERUSE_ERR_MPI_INIT: case PERUSE_ERR_COMM:
    case PERUSE_ERR_MPI_OBJECT: case PERUSE_ERR_LOCK: case PERUSE_ERR_UNLOCK: return "error";
    case PERUSE_LOCK_NOT_GRANTABLE: return "not grantable";
    default: return "unknown";
    }
}
int tool(MPI_Comm comm)
{
    peruse_event_h eh = PERUSE_EVENT_HANDLE_NULL;
    peruse_comm_callback_f *f = 0;
    peruse_comm_callback_t *t = 0;
    void *param, *object;
    char **names, **env, *name;
    int rv = 0, n, scope, event, *events;
    rv |= PERUSE_Init();
    rv |= PERUSE_Query_supported_events(&n, &names, &events);
    rv |= PERUSE_Query_event("PERUSE_COMM_REQ_ACTIVATE", &event);
    rv |= PERUSE_Query_event_name(event, &name);
    rv |= PERUSE_Query_environment(&n, &env);
    rv |= PERUSE_Query_queue_event_scope(&scope);
    rv |= by_f(comm, first, &eh) | by_t(comm, second, &eh);
    rv |= PERUSE_Event_propagate(eh, PERUSE_TRUE);
    rv |= PERUSE_Event_comm_callback_set(eh, second, NULL);
    rv |= PERUSE_Event_activate(eh);
    rv |= PERUSE_Event_comm_callback_get(eh, &f, &param);
    rv |= PERUSE_Event_comm_callback_get(eh, &t, &param);
    rv |= PERUSE_Event_get(eh, &event);
    rv |= PERUSE_Event_object_get(eh, &object);
    rv |= PERUSE_Lock() | PERUSE_Unlock();
    rv |= PERUSE_Event_deactivate(eh);
    rv |= PERUSE_Event_release(&eh);
    return text(rv) == 0;
}
"#;

#[test]
fn c_and_cpp_take_the_header_and_both_spellings_of_a_callback() {
    let dir = scratch("peruse_tool");
    for (file, compiler, standards) in
        [("tool.c", "cc", &["c99", "c11", "c17"][..]), ("tool.cc", "c++", &["c++98", "c++11", "c++17"][..])]
    {
        fs::write(dir.join(file), TOOL).unwrap();
        for standard in standards {
            let out = Command::new(compiler)
                .args(["-c", "-Wall", "-Wextra", "-Werror", &format!("-std={standard}"), "-I"])
                .arg(root().join("include"))
                .args([file, "-o", "tool.o"])
                .current_dir(&dir)
                .output()
                .unwrap_or_else(|e| panic!("{compiler}: {e}"));
            success(out, &format!("{compiler} -std={standard} {file}"));
        }
    }
}

#[test]
fn the_programs_of_the_guide_compile() {
    let guide = fs::read_to_string(root().join("docs/writing-a-peruse-tool.md")).unwrap();
    let dir = scratch("peruse_guide");
    let blocks: Vec<&str> = guide
        .split("\n```c\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .filter(|block| block.contains("MPI_Init("))
        .collect();
    assert_eq!(blocks.len(), 2, "the program that watches itself, and the tool");
    for (number, block) in blocks.iter().enumerate() {
        let text = format!(
            "#include <mpi.h>\n#include <peruse.h>\nvoid watch(MPI_Comm comm);\nvoid report(void);\n{block}\n"
        );
        let file = format!("block{number}.c");
        fs::write(dir.join(&file), text).unwrap();
        cc(&["-c", "-std=c99", "-Wall", "-Werror", &file, "-o", "block.o"], &dir);
    }
}
