/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that differ only at their end. */
BEGIN
{
	a["a rather long key with an end of 1"] = 1;
	a["a rather long key with an end of 2"] = 2;
	printf("%d %d\n", a["a rather long key with an end of 1"],
	    a["a rather long key with an end of 2"]);
	exit(0);
}
/* output:
1 2

*/
