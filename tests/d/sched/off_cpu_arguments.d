/* SPDX-License-Identifier: Apache-2.0 */
/* args[0] and args[1] of off-cpu are the thread that comes next and its process. */
/* flags: -q -c "/bin/sleep 0.05" */
sched:::off-cpu
/pid == $target/
{
	n += args[1]->pr_pid != pid;
	m++;
}
END
{
	printf("%d\n", n == m && n > 0);
}
/* output:
1

*/
