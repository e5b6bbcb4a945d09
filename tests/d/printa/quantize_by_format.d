/* SPDX-License-Identifier: Apache-2.0 */
/* %@d of a quantize() aggregation is its table. */
BEGIN
{
	@a["k"] = quantize(5);
	printa("%s:%@d.\n", @a);
	exit(0);
}
/* output:
k:
           value  ------------- Distribution ------------- count    
               2 |                                         0        
               4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
               8 |                                         0        
.

*/
