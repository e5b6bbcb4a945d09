/* SPDX-License-Identifier: Apache-2.0 */
/* @x and x have nothing to do with each other. */
BEGIN
{
	x = "text";
	@x = sum(3);
	printf("%s ", x);
	printa("%@d\n", @x);
	exit(0);
}
/* output:
text 3

*/
