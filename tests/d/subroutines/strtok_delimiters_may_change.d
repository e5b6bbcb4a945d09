/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: each call has its own delimiters. */
BEGIN
{
	printf("%s ", strtok("key=value;rest", "="));
	printf("%s ", strtok(NULL, ";"));
	printf("%s\n", strtok(NULL, ""));
	exit(0);
}
/* output:
key value rest

*/
