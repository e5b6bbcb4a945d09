/* SPDX-License-Identifier: Apache-2.0 */
/* args[3] of dequeue are the scheduler's flags. */
/* flags: -e */
/* unless: which this kernel does not have */
sched:::dequeue
{
	printf("%d %d", args[2]->cpu_id, args[3]);
}
/* output:
*/
