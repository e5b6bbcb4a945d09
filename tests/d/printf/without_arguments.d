/* SPDX-License-Identifier: Apache-2.0 */
/* A format without conversions. */
BEGIN
{
	printf("plain\n");
	printf("");
	exit(0);
}
/* output:
plain

*/
