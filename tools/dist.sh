#!/usr/bin/env bash
# Lay out build/cuda-agent/{bin,share} with the libraries that the binaries need, and pack it.
# The C library, its loader and libm stay the system's. usage: tools/dist.sh BIN_DIR
set -eu
cd "$(dirname "$0")/.."
root=build/cuda-agent
rm -rf "$root"
mkdir -p "$root/bin/lib" "$root/share/cuda-agent"
for f in cuda-agent ca-runner libca_device.so; do
    cp "$1/$f" "$root/bin/"
    ldd "$1/$f" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' |
        while read -r lib; do cp -L "$lib" "$root/bin/lib/"; done
done
cp -r py include examples skills "$root/share/cuda-agent/"
find "$root" -name __pycache__ -prune -exec rm -rf {} +
cp README.md LICENSE "$root/"
tar -C build -czf build/cuda-agent.tar.gz cuda-agent
ls -l build/cuda-agent.tar.gz
