#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process that maps a device is read by the kernel, and by loads when it has it no more.
# output:
# its memory is read by system calls: it maps the device /dev/mem
# its memory is read by loads that cannot fault
exec python3 - <<'PROGRAM'
import mmap
import os
import subprocess

BIOS = 0xF0000  # May be mapped where the rest of memory may not (CONFIG_STRICT_DEVMEM).


def tell():
    told = subprocess.run([os.environ["CLEW"], "doctor", "-p", str(os.getpid())],
                          capture_output=True, text=True, check=False)
    at = told.stdout.find("its memory is read by")
    print(told.stdout[at:].splitlines()[0], flush=True)


with open("/dev/mem", "rb") as memory:
    device = mmap.mmap(memory.fileno(), mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ, offset=BIOS)
tell()
device.close()
tell()
PROGRAM
