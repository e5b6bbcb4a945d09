/* SPDX-License-Identifier: Apache-2.0 */
/* $target without a target: the description is shown as it was written. */
/* flags: -e */
/* status: 1 */
/* stderr: probe description pid$target::malloc:entry names no process: $target is that of -p PID or -c COMMAND */
pid$target::malloc:entry
{
	exit(0);
}
