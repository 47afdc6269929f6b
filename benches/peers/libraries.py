"""Who takes part, and how each is started: what its manual recommends for one machine."""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import catalog


class Variant(NamedTuple):
    """A way to run a library. Several of one library: the better one is quoted, metric by metric."""

    library: str
    name: str
    launcher: str
    # Options when every rank has a processor, when ranks outnumber them, and when ranks have threads.
    dedicated: tuple
    oversubscribed: tuple
    threaded: tuple
    environment: dict
    # Groups that it takes part in; None: all.
    groups: tuple | None = None
    # Options beside, for groups whose buffers a launcher can have shared.
    sharing: tuple = ()

    def command(self, group, processors):
        options = self.threaded if group.threaded else self.dedicated if group.ranks <= processors else self.oversubscribed
        return [self.launcher, "-n", str(group.ranks), *options, *(self.sharing if group.sharing else ())]


def variants(peers: Path, build: Path, dist: Path):
    mpich, openmpi, impi = (str(peers / name / "bin/mpiexec") for name in ("mpich", "openmpi", "impi"))
    unyielding = ("-bind-to", "core", "-genv", "LD_PRELOAD", str(build / "noyield.so"))
    # Ranks that spin hand the processor on: Open MPI's FAQ on oversubscription. Shared memory is what it takes by
    # itself; named here, so that it looks for nothing else.
    shared = ("--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,sm")
    yielding = (*shared, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
    root = {name + end: "1" for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT") for end in ("", "_CONFIRM")}
    intel = {"I_MPI_ROOT": str(peers / "impi"), "I_MPI_FABRICS": "shm"}
    own_heap = ("-genv", "I_MPI_SHM_HEAP", "1", "-genv", "LD_PRELOAD", str(peers / "impi/lib/libmpi_shm_heap_proxy.so"))
    return (
        Variant("perusal", "perusal", str(dist / "bin/mpiexec"), ("--bind-to", "core"), (), ("--bind-to", "none"), {"PERUSAL_TUNE_FILE": "none"}, sharing=("--share-heap",)),
        Variant("MPICH", "MPICH", mpich, ("-bind-to", "core"), (), (), {}),
        # The package calls sched_yield at every empty poll.
        # A call that costs nothing is better where nobody else wants the processor.
        Variant("MPICH", "MPICH, sched_yield free", mpich, unyielding, (), (), {}, catalog.PAIRS),
        Variant("Open MPI", "Open MPI", openmpi, (*shared, "--bind-to", "core"), yielding, yielding, root),
        # On some machines two copies through shared memory beat one by a system call.
        Variant("Open MPI", "Open MPI without CMA", openmpi, (*shared, "--bind-to", "core", "--mca", "smsc", "^cma"), yielding, yielding, root, catalog.PAIRS),
        Variant("Intel MPI", "Intel MPI", impi, ("-bind-to", "core"), (), ("-genv", "I_MPI_PIN", "0"), intel),
        # Its own way to have malloc's buffers shared, where ours is on.
        Variant("Intel MPI", "Intel MPI with its shared heap", impi, ("-bind-to", "core", *own_heap), (), (), intel, ("shared malloc",)),
    )


LIBRARIES = ("perusal", "MPICH", "Open MPI", "Intel MPI")


def program(build: Path, library, kind="bench"):
    return str(build / f"{kind}-{library.lower().replace(' ', '')}")


def versions(peers: Path, dist: Path):
    """Library by library, of what is installed."""
    found = {}
    for library, package, folder in (("MPICH", "mpich", "mpich"), ("Open MPI", "openmpi", "openmpi"), ("Intel MPI", "impi_rt", "impi")):
        infos = list((peers / folder).glob(f"lib/python*/site-packages/{package}-*.dist-info"))
        found[library] = infos[0].name.split("-")[1].removesuffix(".dist") if infos else "?"
    said = subprocess.run([dist / "bin/mpiexec", "--version"], capture_output=True, text=True, check=False).stdout.split()
    found["perusal"] = next((word for word in said if re.match(r"\d", word)), "?")
    return found


def machine():
    """What the figures belong to."""
    info = Path("/proc/cpuinfo").read_text()
    field = lambda name: next(iter(re.findall(rf"^{name}\s*: (.*)$", info, re.M)), "?")
    name = f"{field('model name')} (family {field('cpu family')}, model {field('model')})"
    if "hypervisor" in field("flags"):
        name += ", virtual"
    return {"cpu": name, "processors": len(os.sched_getaffinity(0)), "kernel": os.uname().release}
