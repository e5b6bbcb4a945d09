/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 12: later assignments are cut to the first type. */
BEGIN
{
	x = (char)1;
}
BEGIN
{
	x = 300;
	printf("%d\n", x);
	exit(0);
}
/* output:
44

*/
