"""usage: python -m forkserver LIBRARY TASK_FD cpu|cuda, with the examiner's socket as descriptor 3."""
import copy
import ctypes
import gc
import os
import signal
import sys
import warnings

sys.modules["numpy"] = None  # torch would hand its tensors to it, imported by the candidate or not
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch

from .candidate import Candidate
from .contract import Host
from .operators import Remover

SOCKET = 3


def run(library, task_source: str, remover: Remover) -> None:
    """In the box: answer the examiner until it is gone."""
    os.environ["TMPDIR"] = os.environ["HOME"] = os.getcwd()  # the box's own folder, on every rung
    host = Host()
    candidate = Candidate(library, host, task_source, remover)  # holds what the host calls
    library.runner_serve(ctypes.byref(candidate.host))


def load_the_rest() -> None:
    """What torch imports at first use (its meta functions: a second of sympy), once for all forks."""
    with torch.device("meta"):
        copy.deepcopy(torch.nn.Linear(2, 2)).load_state_dict(torch.nn.Linear(2, 2).state_dict(), strict=False)
        torch.randn(2).to(torch.float16)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C is the examiner's; its end is seen on the socket
    library = ctypes.CDLL(sys.argv[1])
    with os.fdopen(int(sys.argv[2]), encoding="utf-8") as f:
        task_source = f.read()
    torch.set_num_threads(1)  # no pool of threads: a fork would lose it
    cuda = sys.argv[3] == "cuda"
    if cuda:
        memory = torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "torch_memory_alloc", "torch_memory_free")
        torch.cuda.memory.change_current_allocator(memory)
    load_the_rest()
    remover = Remover(cuda)
    gc.collect()
    gc.freeze()  # forks share what is loaded
    while library.box_fork_wait(SOCKET) == 1:
        child = os.fork()
        if child == 0:
            if os.fork() != 0:
                os._exit(0)
            if library.box_fork_enter() == SOCKET:
                run(library, task_source, remover)
            os._exit(0)
        os.waitpid(child, 0)
        library.box_fork_drop()


main()
