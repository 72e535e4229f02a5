"""runners.py DIRECTORY OUT GPU...: which GPUs the runners of a program can use, as a loader of language models asks before it starts one.

A runner is a library lib*.so with device code. A GPU is usable if each container of a runner has code for it, and what it loads is
written to OUT/GPU/RUNNER.N.co. Exit code 1 where a GPU has no runner: the program computes on the CPU then.
"""
import os
import sys

from hotswap import File


def code_for(path, gpu):
    """What the GPU loads: for each container the bytes, the route, the source."""
    file = File(path)
    return [file.bytes_for(gpu, container) for container in range(file.containers)]


def use(runner, gpu, codes, out):
    """Writes the code of a runner, and tells how it was made."""
    os.makedirs(os.path.join(out, gpu), exist_ok=True)
    for number, (code, _, _) in enumerate(codes):
        with open(os.path.join(out, gpu, f"{runner}.{number}.co"), "wb") as output:
            output.write(code)
    how = sorted({f"{route} from {source}" for _, route, source in codes})
    print(f"{gpu}: {runner}, {len(codes)} code objects ({', '.join(how)})")


def serve(directory, out, gpu):
    """Uses the first runner with code for the GPU. Whether there is one."""
    for runner in sorted(name for name in os.listdir(directory) if name.startswith("lib") and ".so" in name):
        try:
            codes = code_for(os.path.join(directory, runner), gpu)
        except OSError as error:
            print(f"{gpu}: not {runner}: {error.strerror}", file=sys.stderr)
            continue
        if codes:
            use(runner, gpu, codes, out)
            return True
    print(f"{gpu}: no runner, the CPU")
    return False


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    served = [serve(sys.argv[1], sys.argv[2], gpu) for gpu in sys.argv[3:]]
    sys.exit(0 if all(served) else 1)
