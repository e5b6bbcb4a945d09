/* SPDX-License-Identifier: Apache-2.0 */
/* Each process descends from the first one, and none from an unused number. */
BEGIN
{
	printf("%d %d\n", progenyof($pid), progenyof(0x7ffffffe));
	exit(0);
}
/* output:
1 0

*/
