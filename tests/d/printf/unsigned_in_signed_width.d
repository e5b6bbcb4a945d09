/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 27: zeros and widths of values of 1 and 2 bytes. */
BEGIN
{
	printf("[%04x] [%6d] [%-6d] [%+d]\n", (char)-1, (short)-5, (uint8_t)200, (char)7);
	exit(0);
}
/* output:
[00ff] [    -5] [200   ] [+7]

*/
