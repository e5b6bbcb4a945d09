/* SPDX-License-Identifier: Apache-2.0 */
/* Every tracepoint of the kernel is a probe. */
/* flags: -q -c "/bin/sleep 0.05" */
sdt:::sched_switch
/pid == $target/
{
	n++;
}
END
{
	printf("%d\n", n > 0);
}
/* output:
1

*/
