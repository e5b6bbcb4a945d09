/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 18: an element that is stored and deleted in turn takes no more room: no drops here. */
/* flags: -q -xdynvarsize=64k */
int i;
tick-1ms
/i < 500/
{
	a[i] = 1;
	a[i] = 0;
	b[i, i + 1] = 1;
	b[i, i + 1] = 0;
	i++;
}
tick-1ms
/i == 500/
{
	printf("done %d\n", i);
	exit(0);
}
/* output:
done 500

*/
