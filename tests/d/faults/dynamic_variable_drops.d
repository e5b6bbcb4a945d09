/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 45: no room for a dynamic variable: counted, the clause ends, the status stays 0. */
/* flags: -q -xdynvarsize=4k */
/* stderr: dynamic variable drop */
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
