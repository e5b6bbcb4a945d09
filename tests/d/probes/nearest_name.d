/* SPDX-License-Identifier: Apache-2.0 */
/* The same of the last field alone. */
/* flags: -e */
/* status: 1 */
/* stderr:  did you mean 'sched:::on-cpu'? */
sched:::on-cpuu
{
	exit(0);
}
