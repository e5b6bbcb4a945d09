/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: delimiters in front of a token are skipped. */
BEGIN
{
	printf("%s\n", strtok("///usr//bin", "/"));
	printf("%s\n", strtok(NULL, "/"));
	exit(0);
}
/* output:
usr
bin

*/
