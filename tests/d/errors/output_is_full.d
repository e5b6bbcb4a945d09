/* SPDX-License-Identifier: Apache-2.0 */
/* Output that finds no room is not lost in silence, and ends the tracing. */
/* flags: -q -o /dev/full */
/* status: 1 */
/* stderr: dtrace: failed to write output: No space left on device */
BEGIN, tick-10ms
{
	printf("x\n");
}
