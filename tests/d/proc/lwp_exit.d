/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread that ends fires lwp-exit. */
/* flags: -q -c /bin/true */
proc:::lwp-exit
/pid == $target/
{
	printf("%d\n", pid == tid);
}
/* output:
1

*/
