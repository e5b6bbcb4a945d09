/* SPDX-License-Identifier: Apache-2.0 */
/* A process that sleeps goes off and on the CPU. */
/* flags: -q -c "/bin/sleep 0.05" */
sched:::off-cpu
/pid == $target/
{
	off++;
}
sched:::on-cpu
/pid == $target && off/
{
	on++;
}
END
{
	printf("%d %d\n", off > 0, on > 0);
}
/* output:
1 1

*/
