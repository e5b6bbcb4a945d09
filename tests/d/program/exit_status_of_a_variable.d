/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 3: the status may be computed. */
/* status: 5 */
BEGIN
{
	x = 2;
	exit(x + 3);
}
/* output:

*/
