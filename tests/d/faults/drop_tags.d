/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 45: with droptags each line on drops has a tag. */
/* flags: -q -xdynvarsize=4k -xdroptags */
/* stderr: [DTRACEDROP_DYNAMIC]  */
tick-1ms
{
	i++;
}
tick-1ms
{
	a[i] = "a string makes an element large";
}
tick-1ms
/i == 200/
{
	exit(0);
}
/* output:

*/
