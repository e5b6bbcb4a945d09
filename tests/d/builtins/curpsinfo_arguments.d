/* SPDX-License-Identifier: Apache-2.0 */
/* curpsinfo has the number of arguments, and where they and the environment are. */
/* flags: -q -c "/bin/true one two" */
syscall::exit_group:entry
/pid == $target/
{
	this->second = *(uintptr_t *)copyin(curpsinfo->pr_argv + 16, sizeof (uintptr_t));
	this->behind = *(uintptr_t *)copyin(curpsinfo->pr_argv + 24, sizeof (uintptr_t));
	this->variable = *(uintptr_t *)copyin(curpsinfo->pr_envp, sizeof (uintptr_t));
	printf("%d %s %d %d\n", curpsinfo->pr_argc, copyinstr(this->second), this->behind == 0,
	    strchr(copyinstr(this->variable), '=') != NULL);
	printf("%s\n", curpsinfo->pr_psargs);
}
/* output:
3 two 1 1
/bin/true one two

*/
