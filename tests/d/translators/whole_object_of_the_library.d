/* SPDX-License-Identifier: Apache-2.0 */
/* curpsinfo as a value. */
BEGIN
{
	this->p = xlate <psinfo_t> (curthread);
	this->q = curpsinfo;
	printf("%d %d\n", this->p.pr_pid == pid, this->q->pr_fname == execname);
	exit(0);
}
/* output:
1 1

*/
