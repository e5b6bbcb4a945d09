/* SPDX-License-Identifier: Apache-2.0 */
/* Subroutines in subroutines. */
BEGIN
{
	printf("%s\n", substr(toupper(strjoin(basename("/a/file"), dirname("/b/c"))), 1, 5));
	exit(0);
}
/* output:
ILE/B

*/
