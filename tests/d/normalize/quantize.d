/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: counts in a table are divided, too, and the bars stay. */
BEGIN
{
	@a = quantize(1, 20);
	@a = quantize(2, 60);
	normalize(@a, 10);
	printa(@a);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@                               2        
               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           6        
               4 |                                         0        


*/
