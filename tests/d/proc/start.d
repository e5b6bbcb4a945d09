/* SPDX-License-Identifier: Apache-2.0 */
/* The process that was made starts. */
/* unless: this kernel lets no program at its functions */
/* flags: -q -c "/usr/bin/timeout 5 /bin/true" */
proc:::start
/ppid == $target/
{
	printf("start\n");
}
/* output:
start

*/
