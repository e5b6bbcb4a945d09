/* SPDX-License-Identifier: Apache-2.0 */
/* bcopy() copies from the kernel. */
BEGIN
{
	this->p = (struct task_struct *)alloca(sizeof (struct task_struct));
	bcopy(&curthread->pid, &this->p->pid, sizeof (pid_t));
	printf("%d\n", this->p->pid == tid);
	exit(0);
}
/* output:
1

*/
