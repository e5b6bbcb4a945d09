#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two sessions share the load; the last one takes it out. One that is killed leaves it to the next.
# output:
# first: changed
# both: changed
# one left: changed
# none left: as it was
# killed: changed
# taken out: as it was
# 30 calls
exec python3 "$HERE/loads/sessions.py"
