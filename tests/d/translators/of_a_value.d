/* SPDX-License-Identifier: Apache-2.0 */
/* A translator whose input is a number. */
struct parts { int high; int low; };
translator struct parts < int V > {
	high = V >> 8;
	low = V & 0xff;
};
BEGIN
{
	x = 0x1234;
	printf("%x %x\n", xlate <struct parts> (x).high, xlate <struct parts> (x).low);
	exit(0);
}
/* output:
12 34

*/
