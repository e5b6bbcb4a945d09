/* SPDX-License-Identifier: Apache-2.0 */
/* An array of char with text is traced as text. */
struct s { char b[8]; };
struct s v;
BEGIN
{
	v.b[0] = 'o';
	v.b[1] = 'k';
	trace(v.b);
	trace("\n");
	exit(0);
}
/* output:
ok

*/
