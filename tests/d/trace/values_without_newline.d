/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 23: in quiet mode trace() prints the value only. */
BEGIN
{
	trace(1);
	trace(-2);
	trace("three");
	trace(4ll);
	trace("\n");
	exit(0);
}
/* output:
1-2three4

*/
