/* SPDX-License-Identifier: Apache-2.0 */
/* uregs[] by name: the first argument of a system call is in RDI. */
/* flags: -q -c /bin/false */
syscall::exit_group:entry
/pid == $target/
{
	printf("%d %d\n", uregs[R_RDI], uregs[R_RSP] > 0);
}
/* output:
1 1

*/
