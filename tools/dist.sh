#!/usr/bin/env bash
# Lay out build/cuda-agent/{bin,share} with the libraries that the binaries need, and pack it: a tree that runs from
# anywhere, without root. The C library, its loader and libm stay the system's. usage: tools/dist.sh BIN_DIR
set -eu
cd "$(dirname "$0")/.."
root=build/cuda-agent share=build/cuda-agent/share
rm -rf "$root"
mkdir -p "$root/bin/lib" "$share/cuda-agent" "$share/man/man1" "$share/bash-completion/completions"
for f in cuda-agent ca-runner libca_device.so libca_torch.so; do
    install -m 755 "$1/$f" "$root/bin/"
    strip --strip-unneeded "$root/bin/$f"
    ldd "$1/$f" | awk '/not found/ {print "missing library:", $1 >"/dev/stderr"; exit 1} $2 == "=>" {print $3}' |
        { grep -vE '/(libc|libm|libpthread|libdl|librt|libresolv|ld-linux[^/]*)\.so' || true; } |
        while read -r lib; do install -m 644 "$lib" "$root/bin/lib/"; done
done
git ls-files py include workdir examples skills docs | while read -r f; do
    install -D -m "$([ -x "$f" ] && echo 755 || echo 644)" "$f" "$share/cuda-agent/$f"
done
"$1/cuda-agent" help --format man >"$share/man/man1/cuda-agent.1"
"$1/cuda-agent" help --format bash >"$share/bash-completion/completions/cuda-agent"
install -m 644 README.md LICENSE "$root/"
tar -C build --owner=0 --group=0 --sort=name -czf build/cuda-agent.tar.gz cuda-agent
ls -l build/cuda-agent.tar.gz
