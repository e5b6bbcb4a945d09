/* SPDX-License-Identifier: Apache-2.0 */
/* A member may be a string. */
struct number { string text; };
translator struct number < int V > {
	text = V == 1 ? "one" : "many";
};
BEGIN
{
	x = 1;
	y = 2;
	printf("%s %s\n", xlate <struct number> (x).text, xlate <struct number> (y).text);
	exit(0);
}
/* output:
one many

*/
