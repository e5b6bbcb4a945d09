/* SPDX-License-Identifier: Apache-2.0 */
/* A format without conversions. */
BEGIN
{
	printf("plain\n");
	exit(0);
}
/* output:
plain

*/
