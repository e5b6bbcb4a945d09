/* SPDX-License-Identifier: Apache-2.0 */
/* With -q, the output is the program's alone, also with -v. */
/* flags: -q -v */
BEGIN
{
	printf("traced\n");
	exit(0);
}
/* output:
traced

*/
