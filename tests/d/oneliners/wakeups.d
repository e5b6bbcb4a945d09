/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
sched:::wakeup
{
	@[execname, args[1]->pr_fname, stack(4)] = count();
}
