/* SPDX-License-Identifier: Apache-2.0 */
/* What says off is off. */
/* flags: -q -x nolibs=off */
BEGIN
{
	printf("%d\n", SIGKILL);
	exit(0);
}
/* output:
9

*/
