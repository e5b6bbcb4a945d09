/* SPDX-License-Identifier: Apache-2.0 */
/* A name that nobody has is answered with the nearest one. */
/* flags: -e */
/* status: 1 */
/* stderr: probe description syscall::opne:entry does not match any probes */
/* stderr:  did you mean 'syscall::open:entry'? */
syscall::opne:entry
{
	exit(0);
}
