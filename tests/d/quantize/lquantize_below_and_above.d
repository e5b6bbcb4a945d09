/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: the first label is < base, the last >= limit. */
BEGIN
{
	@ = lquantize(-1, 0, 30, 10);
	@ = lquantize(30, 0, 30, 10);
	@ = lquantize(15, 0, 30, 10);
	@ = lquantize(1000, 0, 30, 10);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
             < 0 |@@@@@@@@@@                               1        
               0 |                                         0        
              10 |@@@@@@@@@@                               1        
              20 |                                         0        
           >= 30 |@@@@@@@@@@@@@@@@@@@@                     2        

*/
