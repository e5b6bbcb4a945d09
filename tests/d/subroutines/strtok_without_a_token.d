/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: a string of delimiters only has no token. */
BEGIN
{
	printf("%d %d\n", strtok("///", "/") == NULL, strtok("", "/") == NULL);
	exit(0);
}
/* output:
1 1

*/
