"""The usual harness, imitated: three steps, each in a Python of its own, nothing kept between them.

    python3 bench/cold.py cpu|cuda WORKDIR

compile builds the candidate as a torch extension, with torch's headers; verify compares five random inputs with eager;
profile compiles the baseline anew and times eager, compile and candidate. Prints seconds of each step and the sum.
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DRAWS, WARMUP, TRIALS = 5, 10, 100


def cuda_home() -> pathlib.Path:
    for place in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        if place and (pathlib.Path(place) / "bin/nvcc").exists():
            return pathlib.Path(place)
    on_path = shutil.which("nvcc")
    if on_path:
        return pathlib.Path(on_path).resolve().parents[1]
    import nvidia
    found = [p for root in nvidia.__path__ for p in pathlib.Path(root).glob("cu*/bin/nvcc")]
    if not found:
        sys.exit("no nvcc: set CUDA_HOME")
    return found[0].parents[1]


def compile_step(target: str, work: pathlib.Path, out: pathlib.Path) -> None:
    import torch
    from torch.utils.cpp_extension import include_paths, library_paths
    cuda = target == "cuda"
    home = cuda_home() if cuda else None
    include = [f"-I{HERE.parent / 'include'}"]
    with_torch = include + [f"-isystem{p}" for p in include_paths()] + ([f"-isystem{home / 'include'}"] if cuda else [])
    jobs, objects = [], []
    for source in sorted((work / "kernels").glob("*.cu" if cuda else "*.c")):
        objects.append(out / f"{source.name}.o")
        if cuda:
            major, minor = torch.cuda.get_device_capability()
            arch = f"{major}{minor}" + ("a" if major in (9, 10) else "")
            command = [str(home / "bin/nvcc"), "-O3", f"-arch=sm_{arch}", "-Xcompiler", "-fPIC"]
        else:
            command = ["gcc", "-O3", "-march=native", "-fopenmp", "-fPIC"]
        jobs.append([*command, *include, "-c", str(source), "-o", str(objects[-1])])
    objects.append(out / "binding.o")
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    jobs.append(["g++", "-std=c++17", "-O2", "-fPIC", "-w", abi, *(["-DCOLD_CUDA"] if cuda else []), *with_torch, "-c",
                 str(HERE / "cold/binding.cpp"), "-o", str(objects[-1])])
    running = [subprocess.Popen(j) for j in jobs]
    if any([p.wait() for p in running]):
        sys.exit("the build failed")
    libraries = [f"-L{p}" for p in library_paths()] + ["-lc10", "-ltorch_cpu", "-ltorch", "-fopenmp"]
    if cuda:
        runtime = [f for d in ("lib64", "lib") for f in (home / d).glob("libcudart.so*")]
        libraries += ["-lc10_cuda", "-ltorch_cuda", str(runtime[0])]
    subprocess.run(["g++", "-shared", *map(str, objects), *libraries, "-o", str(out / "cold.so")], check=True)


def load_task(target: str, work: pathlib.Path):
    import torch
    spec = importlib.util.spec_from_file_location("task", work / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    device = "cuda" if target == "cuda" else "cpu"
    model = module.Model(*module.get_init_inputs()).eval().to(device)
    return model, lambda: [t.to(device) if isinstance(t, torch.Tensor) else t for t in module.get_inputs()]


def candidate_of(model, inputs, out: pathlib.Path):
    import torch
    torch.ops.load_library(str(out / "cold.so"))
    params = [p.detach() for p in model.state_dict().values()]
    with torch.no_grad():
        room = torch.empty_like(model(*inputs), memory_format=torch.contiguous_format)
    torch.ops.cold.setup(inputs, params, [room])

    def call(*given):
        result = torch.empty_like(room)
        torch.ops.cold.forward(list(given), params, [result])
        return result
    return call


def verify_step(target: str, work: pathlib.Path, out: pathlib.Path) -> None:
    import torch
    model, draw = load_task(target, work)
    call = candidate_of(model, draw(), out)
    for _ in range(DRAWS):
        given = draw()
        with torch.no_grad():
            if not torch.allclose(call(*given), model(*given), atol=1e-2, rtol=1e-2):
                sys.exit("the candidate is wrong")


def profile_step(target: str, work: pathlib.Path, out: pathlib.Path) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile
    model, draw = load_task(target, work)
    given = draw()
    sync = torch.cuda.synchronize if target == "cuda" else lambda: None
    activity = ProfilerActivity.CUDA if target == "cuda" else ProfilerActivity.CPU
    for name, call in (("eager", model), ("compile", torch.compile(model)), ("candidate", candidate_of(model, given, out))):
        with torch.no_grad():
            for _ in range(WARMUP):
                call(*given)
            sync()
            start = time.perf_counter()
            with profile(activities=[activity]):
                for _ in range(TRIALS if target == "cuda" else WARMUP):
                    call(*given)
                sync()
            print(f"  {name}: {(time.perf_counter() - start) * 1e3:.0f} ms under the profiler")


STEPS = {"compile": compile_step, "verify": verify_step, "profile": profile_step}


def main() -> None:
    target, work = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    if len(sys.argv) > 3:  # one step, in a process of its own
        STEPS[sys.argv[3]](target, work, pathlib.Path(sys.argv[4]))
        return
    total = 0.0
    with tempfile.TemporaryDirectory() as folder:
        caches = {"TORCHINDUCTOR_CACHE_DIR": folder + "/inductor", "TRITON_CACHE_DIR": folder + "/triton"}
        for step in STEPS:
            start = time.perf_counter()
            subprocess.run([sys.executable, __file__, target, str(work), step, folder], check=True, env=os.environ | caches)
            seconds = time.perf_counter() - start
            total += seconds
            print(f"{step}: {seconds:.1f} s", flush=True)
    print(f"cold round: {total:.1f} s")


main()
