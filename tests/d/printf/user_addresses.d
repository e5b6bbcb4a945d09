/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %A names an address of the target. */
/* flags: -q -c '/bin/sleep 0.01' */
pid$target:libc.so.6:clock_nanosleep:entry
{
	printf("%A\n", uregs[R_RIP]);
	exit(0);
}
/* output:
libc.so.6`clock_nanosleep

*/
