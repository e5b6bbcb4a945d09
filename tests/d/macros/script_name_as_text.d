/* SPDX-License-Identifier: Apache-2.0 */
/* $0 is the name of the script, as a text. */
BEGIN
{
	printf("%s\n", $0);
	exit(0);
}
/* output:
SCRIPT

*/
