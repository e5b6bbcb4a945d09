/* SPDX-License-Identifier: Apache-2.0 */
/* A declared associative array: value and key types. */
string names[int, char];
BEGIN
{
	names[1, 'a'] = "first";
	printf("%s\n", names[1, 'a']);
	exit(0);
}
/* output:
first

*/
