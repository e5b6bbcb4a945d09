/* SPDX-License-Identifier: Apache-2.0 */
/* As in C, strchr() finds the character after others of its kind. */
BEGIN
{
	printf("%s %s\n", strchr("a=b=c", '='), strrchr("a=b=c", '='));
	exit(0);
}
/* output:
=b=c =c

*/
