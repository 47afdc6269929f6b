// Collectives, sleeps and full rings, communicators, and everything about each rank.
function collectivesSection() {
  const node = sectionOf("collectives", "Collective operations", "Waiting is what the ranks that had come spent until the last one came; the last to come is charged with it.");
  const rows = report.collectives;
  if (rows.length === 0) { node.append(none("No collective operation was recorded.")); return; }
  const most = Math.max(1, ...rows.map((r) => r.waited_ns)), at = (ns) => timeLabel(ns, report.queues.bin_ns);
  node.append(table(null, [
    { title: "operation", cell: (r) => r.operation, text: true }, { title: "communicator", cell: (r) => r.communicator, text: true }, { title: "calls", cell: (r) => show.count(r.calls) }, { title: "bytes a rank", cell: (r) => show.bytes(r.bytes) },
    { title: "time in it, all ranks", cell: (r) => show.ns(r.inside_ns) }, { title: "of which waiting for the last", cell: (r) => show.ns(r.waited_ns), bar: (r) => r.waited_ns / most }, { title: "longest wait", cell: (r) => show.ns(r.longest_ns) }, { title: "at", cell: (r) => (r.longest_ns ? at(r.longest_at_ns) : "–") },
    { title: "last to come", cell: (r) => r.last.slice(0, 3).map((l) => `rank ${l.rank} (${show.count(l.times)}×, ${show.ns(l.cost_ns)})`).join(", ") || "–", text: true }, { title: "algorithms", cell: (r) => r.algorithms.join(", ") || "–", text: true }], rows, "collectives-table"));
}

function callsSection() {
  if (report.calls.length === 0) return;
  const node = sectionOf("calls", "Calls", "Time in the functions of MPI, all ranks together. A call within another one is in that one's time. Of MPI_Test and the like, only calls in which something happened were recorded.");
  const rows = report.calls.slice(0, LISTED), most = Math.max(1, ...rows.map((r) => r.inside_ns)), at = (ns) => timeLabel(ns, report.queues.bin_ns);
  node.append(table(null, [
    { title: "function", cell: (r) => r.function, text: true }, { title: "calls", cell: (r) => show.count(r.calls) }, { title: "time in it", cell: (r) => show.ns(r.inside_ns), bar: (r) => r.inside_ns / most }, { title: "of all ranks' time", cell: (r) => show.share(r.inside_ns / Math.max(1, report.key.rank_time_ns)) },
    { title: "longest", cell: (r) => show.ns(r.longest_ns) }, { title: "at", cell: (r) => (r.longest_ns ? at(r.longest_at_ns) : "–") }, { title: "most at rank", cell: (r) => (r.most_ns ? `${show.plain(r.most_rank)} (${show.ns(r.most_ns)})` : "–") }], rows, "calls-table"));
}

function partitionedSection() {
  if (report.partitioned.length === 0) return;
  const node = sectionOf("partitioned", "Partitioned messages", "A partition that is ready before the receiver is, which has not started or not taken the message before, is put off. Times are sums over all messages of the pair.");
  const rows = report.partitioned.slice(0, LISTED), most = Math.max(1, ...rows.map((r) => r.bytes)), longest = Math.max(1, ...rows.map((r) => r.put_off_ns));
  node.append(table(null, [
    { title: "sender", cell: (r) => show.plain(r.sender) }, { title: "receiver", cell: (r) => show.plain(r.receiver) }, { title: "messages", cell: (r) => show.count(r.messages) }, { title: "bytes", cell: (r) => show.bytes(r.bytes), bar: (r) => r.bytes / most }, { title: "partitions", cell: (r) => show.count(r.partitions) },
    { title: "from the first that was ready to the last", cell: (r) => show.ns(r.ready_ns) }, { title: "put off", cell: (r) => show.count(r.put_off) }, { title: "for", cell: (r) => show.ns(r.put_off_ns), bar: (r) => r.put_off_ns / longest },
    { title: "from the receiver's start to the end", cell: (r) => show.ns(r.open_ns) }, { title: "MPI_Parrived", cell: (r) => show.count(r.tested) }, { title: "in vain", cell: (r) => show.count(r.in_vain) }], rows, "partitioned-table"));
}

function windowsSection() {
  if (report.windows.length === 0) return;
  const node = sectionOf("windows", "Windows", "One-sided operations move bytes to and from another rank's memory; an epoch is the time in which they may. A lock that another rank holds is waited for; who held it for most of the wait is charged with it.");
  const amount = (a) => (a.operations ? `${show.count(a.operations)}× ${show.bytes(a.bytes)}` : "–"), at = (ns) => timeLabel(ns, report.queues.bin_ns);
  node.append(table(null, [
    { title: "window", cell: (w) => w.name, text: true }, { title: "made by", cell: (w) => w.flavor, text: true }, { title: "reached by", cell: (w) => w.reach, text: true }, { title: "ranks", cell: (w) => show.count(w.size) }, { title: "which", cell: (w) => w.members, text: true },
    { title: "put", cell: (w) => amount(w.put) }, { title: "got", cell: (w) => amount(w.get) }, { title: "accumulated", cell: (w) => amount(w.accumulated) },
    { title: "epochs", cell: (w) => w.epochs.map((e) => `${e.kind}: ${show.count(e.times)}×, ${show.ns(e.ns)}, longest ${show.ns(e.longest_ns)}`).join("; ") || "–", text: true },
    { title: "synchronising, all ranks", cell: (w) => show.ns(w.synchronizing_ns) }, { title: "of which waiting for locks", cell: (w) => show.ns(w.lock_waited_ns) }], report.windows, "windows-table"));
  const sum = (c) => c[3] + c[4] + c[5], cells = [...report.one_sided].sort((a, b) => sum(b) - sum(a)).slice(0, LISTED), most = Math.max(1, ...cells.map(sum));
  if (cells.length > 0) node.append(html("h3", {}, "Bytes between ranks by one-sided operations"), table(null, [
    { title: "origin", cell: (c) => show.plain(c[0]) }, { title: "target", cell: (c) => show.plain(c[1]) }, { title: "operations", cell: (c) => show.count(c[2]) }, { title: "bytes", cell: (c) => show.bytes(sum(c)), bar: (c) => sum(c) / most },
    { title: "put", cell: (c) => show.bytes(c[3]) }, { title: "got", cell: (c) => show.bytes(c[4]) }, { title: "accumulated", cell: (c) => show.bytes(c[5]) }], cells, "one-sided-table"));
  const waits = report.lock_waits.slice(0, LISTED), longest = Math.max(1, ...waits.map((r) => r.waited_ns));
  node.append(html("h3", {}, "Who waited for whose lock"), waits.length === 0 ? none("Every lock was granted at once.") : table(null, [
    { title: "rank", cell: (r) => show.plain(r.waiter) }, { title: "waited for the lock of rank", cell: (r) => show.plain(r.target) }, { title: "in window", cell: (r) => r.window, text: true }, { title: "held by rank", cell: (r) => (r.holder === null ? "not known" : show.plain(r.holder)) },
    { title: "for", cell: (r) => show.ns(r.waited_ns), bar: (r) => r.waited_ns / longest }, { title: "times", cell: (r) => show.count(r.times) }, { title: "longest", cell: (r) => show.ns(r.longest_ns) }, { title: "at", cell: (r) => at(r.longest_at_ns) }], waits, "lock-waits-table"));
}

function filesSection() {
  if (report.files.length === 0) return;
  const node = sectionOf("files", "Files", "Times are those of accesses that their callers waited for, all ranks'. In atomic mode a part of a file that another rank has locked is waited for; who held it for most of the wait is charged with it. Waiting in collective accesses is among the collective operations, by the file's name.");
  const amount = (a) => (a.operations ? `${show.count(a.operations)}× ${show.bytes(a.bytes)}` : "–"), at = (ns) => timeLabel(ns, report.queues.bin_ns);
  node.append(table(null, [
    { title: "file", cell: (f) => f.name, text: true }, { title: "ranks", cell: (f) => show.count(f.size) }, { title: "which", cell: (f) => f.members, text: true }, { title: "read", cell: (f) => amount(f.read) }, { title: "written", cell: (f) => amount(f.written) },
    { title: "collective", cell: (f) => show.count(f.collective) }, { title: "nonblocking", cell: (f) => show.count(f.nonblocking) }, { title: "system calls", cell: (f) => show.count(f.disk_accesses) }, { title: "time inside", cell: (f) => show.ns(f.inside_ns) },
    { title: "moving bytes", cell: (f) => show.ns(f.moving_ns) }, { title: "obtaining the shared pointer", cell: (f) => show.ns(f.pointer_ns) }, { title: "waiting for locks", cell: (f) => show.ns(f.lock_waited_ns) }], report.files.slice(0, LISTED), "files-table"));
  const waits = report.file_waits.slice(0, LISTED), longest = Math.max(1, ...waits.map((r) => r.waited_ns));
  node.append(html("h3", {}, "Who waited for which file"), waits.length === 0 ? none("Nobody waited for the lock of a file.") : table(null, [
    { title: "rank", cell: (r) => show.plain(r.waiter) }, { title: "waited for a part of", cell: (r) => r.file, text: true }, { title: "locked by rank", cell: (r) => (r.holder === null ? "not known" : show.plain(r.holder)) },
    { title: "for", cell: (r) => show.ns(r.waited_ns), bar: (r) => r.waited_ns / longest }, { title: "times", cell: (r) => show.count(r.times) }, { title: "longest", cell: (r) => show.ns(r.longest_ns) }, { title: "at", cell: (r) => at(r.longest_at_ns) }], waits, "file-waits-table"));
}

function sleepsSection() {
  const node = sectionOf("sleeps", "Sleeping, and full rings", "A rank that has nothing to do polls for some microseconds and then sleeps until another rank rings its doorbell. A ring that is full makes its sender wait for the receiver to read.");
  const rows = report.ranks.filter((r) => r.sleep.times > 0 || r.ring_full.times > 0);
  if (rows.length === 0) { node.append(none("No rank slept, and no ring was full.")); return; }
  const most = Math.max(1, ...rows.map((r) => r.sleep.ns)), room = html("div", {});
  const draw = () => room.replaceChildren(table(null, [
    { title: "rank", cell: (r) => show.plain(r.rank) }, { title: "sleeps", cell: (r) => show.count(r.sleep.times) }, { title: "asleep", cell: (r) => show.ns(r.sleep.ns), bar: (r) => r.sleep.ns / most }, { title: "of the run", cell: (r) => show.share(r.sleep.ns / Math.max(1, report.job.duration_ns)) },
    { title: "longest", cell: (r) => show.ns(r.sleep.longest_ns) }, { title: "waiting for", cell: (r) => r.sleep.kinds.map((k) => `${k.what}: ${show.ns(k.ns)}`).join(", ") || "–", text: true },
    { title: "ring full", cell: (r) => (r.ring_full.times ? show.count(r.ring_full.times) + "×" : "–") }, { title: "towards", cell: (r) => r.ring_full.peers.map((p) => `rank ${p.rank} (${show.count(p.times)}×)`).join(", ") || "–", text: true }], rows.filter((r) => isSelected(r.rank)), "sleeps-table"));
  state.redraw.push(draw);
  node.append(room);
}

function communicatorsSection() {
  const node = sectionOf("communicators", "Communicators");
  node.append(report.communicators.length === 0 ? none("None was recorded.") : table(null, [
    { title: "name", cell: (c) => c.name, text: true }, { title: "context", cell: (c) => show.plain(c.context) }, { title: "ranks", cell: (c) => show.count(c.size) }, { title: "which", cell: (c) => c.members, text: true },
    { title: "messages", cell: (c) => show.count(c.messages) }, { title: "bytes", cell: (c) => show.bytes(c.bytes) }, { title: "unexpected", cell: (c) => show.count(c.unexpected) }], report.communicators, "communicators-table"));
}

function ranksSection() {
  const node = sectionOf("ranks", "All ranks");
  const room = html("div", {});
  const draw = () => room.replaceChildren(table(null, [
    { title: "rank", cell: (r) => show.plain(r.rank) }, { title: "records", cell: (r) => show.count(r.records) }, { title: "dropped", cell: (r) => show.count(r.dropped) }, { title: "trace", cell: (r) => (r.complete ? "whole" : "cut off"), text: true },
    { title: "messages sent", cell: (r) => show.count(r.sent.messages) }, { title: "bytes", cell: (r) => show.bytes(r.sent.bytes) }, { title: "received", cell: (r) => show.count(r.received.messages) }, { title: "bytes", cell: (r) => show.bytes(r.received.bytes) },
    { title: "unexpected", cell: (r) => show.count(r.unexpected.entries) }, { title: "waited: late sender", cell: (r) => show.ns(r.waited.late_sender_ns) }, { title: "late receiver", cell: (r) => show.ns(r.waited.late_receiver_ns) }, { title: "collectives", cell: (r) => show.ns(r.waited.collective_ns) }, { title: "windows and files", cell: (r) => show.ns(r.waited.lock_ns + r.waited.epoch_ns) }, { title: "other", cell: (r) => show.ns(r.waited.other_ns) }],
    report.ranks.filter((r) => isSelected(r.rank)), "ranks-table"));
  state.redraw.push(draw);
  node.append(room);
}
