/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 25 and 35: umod() and ufunc() as values and as keys. */
/* flags: -q -c '/bin/sleep 0.01' */
syscall::clock_nanosleep:entry
/pid == $target/
{
	umod(uregs[R_RIP]);
	ufunc(uregs[R_RIP]);
	printf("%d\n", vtimestamp > 0);
	@[umod(uregs[R_RIP]), ufunc(uregs[R_RIP])] = count();
}
/* output:
  libc.so.6                                           libc.so.6`clock_nanosleep                         1

  libc.so.6                                           libc.so.6`clock_nanosleep                                         1
*/
